"""`costa demo`, whole: what a newcomer sees first."""

import json


def test_demo_prints_a_table_draws_a_picture_writes_a_page_and_says_where(costa, tmp_path):
    out = tmp_path / "demo"
    result = costa("demo", "--out", out)
    assert result.code == 0, result.err
    for line in ("Raw features", "Diffused features", "Untrained GCN", "COSTA, two views"):
        assert line in result.out
    for file in ("digits.png", "demo.json"):
        assert str(out / file) in result.out
    assert (out / "digits.png").read_bytes().startswith(b"\x89PNG")
    rows = {row["method"]: row for row in json.loads((out / "demo.json").read_text())}
    assert rows["costa-mv"]["nmi"][0] > rows["untrained"]["nmi"][0] > rows["raw"]["nmi"][0]
    for number in ("low_label", "ten_percent", "nmi"):
        assert rows["costa-mv"][number][0] > rows["diffused"][number][0]
    shown = next(line for line in result.out.splitlines() if "COSTA, two views" in line and "±" in line)
    assert f"{100 * rows['costa-mv']['ten_percent'][0]:.1f} ±" in shown
    assert (out / "digits-costa-mv-0" / "model.safetensors").exists()
    page = out / "digits-costa-mv-0" / "report.html"
    assert str(page) in result.out
    assert "<h1>digits: COSTA, two views</h1>" in page.read_text()
