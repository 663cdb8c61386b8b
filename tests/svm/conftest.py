"""Knows the mark that scikit-learn's own tests carry."""


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's; it has no meaning here")
