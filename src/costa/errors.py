"""The one exception a user is meant to read, and how to recognise that memory ran out."""


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence: what, where, and what to do.

    The command line prints the message alone and exits with code 2. In the library it is a ``ValueError``.
    """


def is_connection_lost(problem: BaseException) -> bool:
    """Whether another of the processes that train together has ended; torch.distributed has no exception for it.

    >>> is_connection_lost(RuntimeError("[transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:31882"))
    True
    """
    return type(problem).__name__ == "DistBackendError" or any(
        words in str(problem) for words in ("Connection closed by peer", "Connection reset by peer")
    )


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether GPU or CPU memory ran out; PyTorch has an exception class only for the GPU.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("shapes do not match"))
    (True, False)
    """
    known = isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError"
    return known or any(words in str(problem) for words in ("out of memory", "allocate memory"))
