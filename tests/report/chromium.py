"""What the tests of the page do in a real browser: Debian's Chromium, headless, with a software renderer for WebGL."""

import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

PIXELS = """() => {
  const canvas = document.getElementById("points"), gl = canvas.getContext("webgl2");
  const all = new Uint8Array(4 * canvas.width * canvas.height);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, all);
  const found = [];
  for (let at = 0; at < all.length; at += 4) if (all[at + 3] > 200) {
    const place = at / 4, x = place % canvas.width, y = canvas.height - 1 - Math.floor(place / canvas.width);
    found.push([x, y, all[at], all[at + 1], all[at + 2]]);
  }
  return found;
}"""


def settle(page):
    """Two frames: what was asked for has been drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def colours(page):
    return {tuple(pixel[2:]) for pixel in page.evaluate(PIXELS)}


def find(page, name):
    """Search for a node; its card."""
    page.fill("#find input", name)
    page.press("#find input", "Enter")
    settle(page)
    return page.locator("#card")


def follow(page, address):
    """Open the page at an address within it, without loading it again."""
    page.evaluate("(address) => { location.hash = address; }", address)
    page.wait_for_timeout(20)  # the event comes after the change
    settle(page)


def saved(page, button):
    """The text of the file that a button saves."""
    with page.expect_download() as download:
        button.click()
    return download.value.path().read_bytes().decode()
