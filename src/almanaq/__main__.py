"""`python -m almanaq` is the command `almanaq`."""

import sys

from almanaq.cli import main

sys.exit(main())
