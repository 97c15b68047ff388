#!/usr/bin/env python3
"""A person with a browser that has cookies: opens an address, and agrees to what the pages of npm oidc-provider ask.

usage: person.py ADDRESS
"""

import html
import re
import sys
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
page = browser.open(sys.argv[1])
for _ in range(3):
    text = page.read().decode()
    form = re.search(r'<form[^>]*action="([^"]+)"', text)
    if form is None:
        break
    # The code of a device is shown again, to be confirmed.
    fields = dict(re.findall(r'<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"', text))
    fields = {name: html.unescape(value) for name, value in fields.items() if name != "abort"}
    body = urllib.parse.urlencode({**fields, "confirm": "yes"}).encode()
    page = browser.open(urllib.parse.urljoin(page.url, html.unescape(form[1])), body)
print(page.status, text[:200].replace("\n", " "))
