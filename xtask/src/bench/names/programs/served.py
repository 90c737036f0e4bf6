"""What gunicorn serves: some generations of `forever.py` for each request, from the number that it has.

gunicorn served:application, then GET /?number=N
"""
from urllib.parse import parse_qs

import forever

SECONDS = 0.05


def application(environ, start_response):
    forever.run(SECONDS, int(parse_qs(environ["QUERY_STRING"])["number"][0]))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"done\n"]
