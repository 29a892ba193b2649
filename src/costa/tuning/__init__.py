"""Search settings by validation accuracy: ``space`` is what is searched, ``study`` the search, stored on disk."""
