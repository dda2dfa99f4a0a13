"""Requests at a steady rate while something else happens."""

import threading
import time

import requests

PER_S = 20
PATHS = ("/api/v1/me", "/login")


class Load(threading.Thread):
    """Requests at a steady rate, of a page and of REST, each on a connection of its own."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(daemon=True)
        self._url, self._headers = url, {"Authorization": f"Bearer {token}", "Connection": "close"}
        self._end = threading.Event()
        self.count, self.failures = 0, list[str]()

    def run(self) -> None:
        begin = time.monotonic()
        threads = []
        while not self._end.wait(max(0.0, begin + self.count / PER_S - time.monotonic())):
            path = PATHS[self.count % len(PATHS)]
            self.count += 1
            threads.append(threading.Thread(target=self._ask, args=(path,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _ask(self, path: str) -> None:
        try:
            status = requests.get(self._url + path, headers=self._headers, timeout=30).status_code
        except requests.RequestException as error:
            self.failures.append(f"{path}: {error}")
        else:
            if status != 200:
                self.failures.append(f"{path}: {status}")

    def finish(self) -> None:
        self._end.set()
        self.join()
