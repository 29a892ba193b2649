"""``costa`` in a process of torchrun, where rank ``KILLED`` is killed at its 20th step, unless it was started again."""

import os
import signal

from costa.cli import main
from costa.training import loop, restarted

if __name__ == "__main__":
    loop.CHECKPOINT_EVERY_SECONDS = 0.0
    if os.environ["RANK"] == os.environ["KILLED"] and not restarted():
        run, steps = loop.Steps.run, iter(range(1, 21))

        def run_or_die(self, count):
            if next(steps) == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            return run(self, count)

        loop.Steps.run = run_or_die
    main()
