"""Servers behind one name in the DNS, as a headless service of Kubernetes has them."""

from __future__ import annotations

import socket

from adaptive_eval.discovery.addresses import AddressForm
from adaptive_eval.discovery.beside import Beside
from adaptive_eval.discovery.known import Remembering

__all__ = ["DnsSource"]


class DnsSource(Remembering):
    """All addresses (A and AAAA records) of a name, each with the same port.

    Parameters
    ----------
    host : str
        The name.
    port : int
        Where the servers listen.
    form : AddressForm
        What makes a base address of them.
    every : float
        Seconds from one look-up to the next.
    timeout : float
        Seconds that a look-up may take.
    """

    def __init__(self, host: str, port: int, form: AddressForm, *, every: float, timeout: float) -> None:
        super().__init__(f"the name {host}", every)
        self._host = host
        self._port = port
        self._form = form
        self._look_up = Beside(self._resolve, timeout)

    async def addresses(self) -> tuple[str, ...]:
        """Look the name up."""
        return await self._look_up.result()

    def _resolve(self) -> tuple[str, ...]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        hosts = sorted({str(address[0]) for *_, address in found})
        return tuple(self._form.url(host, self._port) for host in hosts)
