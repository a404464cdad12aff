"""``python -m saverouter decide my.csv``: from a table of outcomes to a decision, on the command line."""

import sys

from saverouter.workbook.deciding import main

if __name__ == "__main__":
    sys.exit(main())
