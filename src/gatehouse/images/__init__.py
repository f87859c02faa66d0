"""Images that people upload: bounded, decoded and encoded anew in a child process, without metadata.

Pictures of people and logos of OAuth clients use it. Does not store or serve images, and never loads the image
library into the server.
"""
