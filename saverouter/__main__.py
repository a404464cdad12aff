"""``python -m saverouter decide my.csv``: from a table of outcomes to a decision, on the command line."""

import sys

try:
    from saverouter.workbook.deciding import main
except ModuleNotFoundError as missing:
    sys.exit(f"error: {missing.name} is not installed; pip install 'saverouter-workbook[notebooks]'")

if __name__ == "__main__":
    sys.exit(main())
