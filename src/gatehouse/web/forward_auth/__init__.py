"""Sites behind a reverse proxy: the question of the proxy, the pages of a sign-in, and the cookies on the site."""
