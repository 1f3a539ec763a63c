"""The mark that keeps all tests of Spark in one process is known also where xdist is not loaded."""


def pytest_configure(config):
    config.addinivalue_line("markers", "xdist_group(name): tests that run in one process")
