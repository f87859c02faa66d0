"""`python -m gatehouse.demo.sample_app FILE`: with the settings in a file, as `gatehouse sample-app` keeps them."""

import sys
from pathlib import Path

import uvicorn

from gatehouse.demo.sample_app.application import create_app
from gatehouse.demo.sample_app.settings import read_settings

if __name__ == "__main__":
    settings = read_settings(Path(sys.argv[1]))
    uvicorn.run(create_app(settings), host="127.0.0.1", port=settings.port, log_level="warning")
