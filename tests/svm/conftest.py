"""Register the marker that scikit-learn's tests use."""


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's; it has no meaning here")
