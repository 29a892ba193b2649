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


FOLLOW = """async (addresses) => {
  const titles = [];
  for (const address of addresses) {
    await new Promise((done) => {
      addEventListener("hashchange", done, { once: true });
      location.hash = address;
    });
    await new Promise(requestAnimationFrame);  // after that of the map, which was asked for first
    titles.push(document.getElementById("card").hidden ? null : document.querySelector("#card h3").textContent);
  }
  return titles;
}"""


def follow(page, *addresses):
    """Go to addresses within the page, one after the other; the heading of each card, None without a card."""
    return page.evaluate(FOLLOW, addresses)


def saved(page, button):
    """The text of the file that a button saves."""
    with page.expect_download() as download:
        button.click()
    return download.value.path().read_bytes().decode()
