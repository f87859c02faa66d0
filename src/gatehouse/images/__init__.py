"""Images from outside: uploaded or fetched once, bounded, encoded anew in a child process, without metadata.

Pictures of people and logos of clients, applications and the installation use it. Does not store or serve images, and
never loads the image library into the server.
"""
