"""The one exception a user is meant to read."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence: what, where, and what to do.

    The command line prints the message alone and exits with code 2. In the library it is a ``ValueError``.
    """
