# SPDX-License-Identifier: MIT
"""How it is told whether what was asked for was reached."""


def line(text, value, most):
    digits = 3 if most <= 2 else 1
    return f"{text}: {value:.{digits}f} (at most {most}) {'ok' if value <= most else 'MISSED'}"
