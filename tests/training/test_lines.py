"""Progress in lines, by a clock of the test's own."""

from costa.training.lines import progress_lines


def test_lines_come_after_two_seconds_and_then_less_and_less_often():
    now, lines = [0.0], list[str]()
    report = progress_lines(100, lines.append, lambda: now[0])
    for epoch in range(1, 101):
        now[0] = 0.1 * epoch
        report(epoch, 5.0)
    assert [line.split(",")[0] for line in lines] == [f"epoch {epoch} of 100" for epoch in (20, 30, 45, 68)]
    assert lines[0] == "epoch 20 of 100, loss 5.0000, 8 s left"


def test_a_short_training_says_nothing():
    now, lines = [0.0], list[str]()
    report = progress_lines(5, lines.append, lambda: now[0])
    for epoch in range(1, 6):
        now[0] = 0.3 * epoch
        report(epoch, 5.0)
    assert lines == []
