#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of -R=html: holds the whole report, asks the network for nothing, and works in a
browser by keys alone (with a chromium in the PATH; without one that part is left out).

usage: page.py --mo-link PATH --work FOLDER
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

# A name that would end the script, if it got into the page as it is.
ODD = 'odd</script><script>document.title="broken"</script>'
UNIT = """int g(int, int);
int h(int);
int odd(int *p) { return g(p[0], p[1]); }
""" + "\n".join(f"""int f{i}(int *p, int x) {{
    int a = g(x, {i}), b = h(a + {i} * 7);
    p[0] = a * 3 + b; p[1] = b + 7; p[2] = a ^ b; p[3] = a - b;
    return h(p[0]) + g(a, b); }}""" for i in range(12))

# Presses keys, and leaves in the page what they did.
KEYS = """<script>setTimeout(() => {
  const log = [], here = () => document.activeElement.getAttribute("aria-label");
  const press = key => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true}));
  document.querySelector('.cell[tabindex="0"]').focus();
  log.push(here());
  document.activeElement.click();
  log.push(here());
  for (let i = 0; i < 9; i++) { press("ArrowRight"); press("ArrowDown"); }
  log.push(here());
  document.activeElement.click();
  log.push(document.getElementById("about").textContent);
  press("Escape");
  log.push(here());
  document.querySelector("details summary").click();
  setTimeout(() => {
    log.push(document.querySelector("details pre").textContent);
    log.push(String(document.documentElement.scrollWidth <= innerWidth));
    log.push(document.title);
    document.body.setAttribute("data-log", btoa(unescape(encodeURIComponent(JSON.stringify(log)))));
  }, 200);
}, 200)</script></body>"""


def run(command, folder):
    return subprocess.run(command, cwd=folder, text=True, capture_output=True,
                          check=True).stdout


def check_page(page, report):
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', page,
                      re.S).group(1)
    inside = json.loads(found)
    bodies = inside.pop("bodies")
    assert inside == report
    assert page.count("<script") == 2 == page.count("</script>")
    names = {one["name"] for unit in inside["units"] for one in unit["functions"]}
    assert ODD in names
    for forbidden in "http:", "https:", "src=", "@import", "url(":
        assert forbidden not in page, forbidden
    helpers = {one["name"]: one for one in report["helpers"]}
    with_code = {name for name, one in helpers.items() if one["bytes"] > 0}
    assert bodies and {one["name"] for one in bodies} == with_code
    functions = {one["key"]: one for unit in report["units"] for one in unit["functions"]}
    for body in bodies:
        assert body["sites"] and all(site["key"] in functions for site in body["sites"])
        assert body["bytes"] == functions[body["key"]]["after"]
        last = body["code"][-1]
        assert last[0] + len(last[1].split()) == body["bytes"], body
        assert any(word in last[2] for word in ("ret", "jmp")), body


def check_browser(browser, page, folder):
    with open(os.path.join(folder, "keys.html"), "w") as file:
        file.write(page.replace("</body>", KEYS))
    for width in 1280, 400:
        dom = run([browser, "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", f"--user-data-dir={folder}/browser",
                   f"--window-size={width},900", "--virtual-time-budget=5000",
                   "--dump-dom", "file://" + os.path.join(folder, "keys.html")], folder)
        found = re.search(r'data-log="([^"]*)"', dom)
        assert found, "the script did not come to its end"
        import base64
        unit, first, other, about, back, code, fits, title = json.loads(
            base64.b64decode(found.group(1)))
        assert unit.startswith("unit a.o") and back == unit, (unit, back)
        assert first != other and not first.startswith("unit"), (first, other)
        assert "really" in about or "helper" in about, about
        assert "ret" in code or "jmp" in code, code
        assert fits == "true" or width < 500, "wider than the window"
        assert title == "mo-link: where the bytes went", title


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mo-link", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    mo_link, work = map(os.path.abspath, (arguments.mo_link, arguments.work))
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "a.c"), "w") as file:
        file.write(UNIT)
    run(["gcc", "-O1", "-c", "a.c"], work)
    run(["objcopy", "--redefine-sym", "odd=" + ODD, "a.o"], work)
    outline = [mo_link, "--outline", "--reruns=2", "--dry-run", "a.o"]
    page = run(outline + ["-R=html"], work)
    run(outline + ["-R=html:page.html"], work)
    with open(os.path.join(work, "page.html")) as file:
        assert file.read() == page
    check_page(page, json.loads(run(outline + ["-R=json"], work)))
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser:
        check_browser(browser, page, work)
    else:
        print("no chromium: the page was not opened")


if __name__ == "__main__":
    sys.exit(main())
