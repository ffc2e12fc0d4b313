#!/usr/bin/env python3
"""The contract of all worlds (contract.py), over plain TCP and over TLS."""
from contract import Contract, Seats as ThisMachine

import support
from support import net

without_theirs = ThisMachine.without_theirs
del ThisMachine  # its tests are not repeated here


class Net(Contract, net.TestCase):
    """Our own workers over plain TCP."""
    more = support.LOCAL_STEPS

    def play(self, *arguments):
        return self.complete(*arguments, workers=3)


class NetEncrypted(Contract, net.TestCase):
    """Programs over TLS."""
    more = ()

    def play(self, *arguments):
        return self.complete(*without_theirs(arguments), workers=3, start=self.program,
                             scheme="tls://", words=("batch=2",))


if __name__ == "__main__":
    support.main()
