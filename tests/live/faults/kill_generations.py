#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill.py's rounds with threads, forked children and execs; the same words."""
import sys

import kill

sys.exit(kill.main(["generations"]))
