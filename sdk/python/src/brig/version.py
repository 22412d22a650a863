"""Version of this package, as it tells brigd."""

VERSION = "0.1.0"
