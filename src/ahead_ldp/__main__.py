"""`python -m ahead_ldp` is the command `ahead`."""

import sys

from ahead_ldp.cli import main

if __name__ == "__main__":
    sys.exit(main())
