"""``python -m lidp`` is the command ``lidp``."""

from lidp.cli import main

if __name__ == "__main__":
    main()
