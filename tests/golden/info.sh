# SPDX-License-Identifier: MIT
export TZ=UTC
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" forks forks.xht
"$XHEAP" info plain.xht | grep -v '^  size'
"$XHEAP" info --format json forks.xht | grep -v size_bytes
# What is not known has no key in JSON, a dash in text, and an empty field in CSV.
"$BUILD/tests/golden/make_trace" untraced untraced.xht
"$XHEAP" info untraced.xht | grep "untraced processes"
"$XHEAP" info untraced.xht | sed -n '/^Processes/,$p'
"$XHEAP" report untraced.xht | grep "untraced processes"
"$XHEAP" info --format json untraced.xht | sed -n '/"processes"/,$p'
"$XHEAP" dump untraced.xht --processes
"$XHEAP" dump untraced.xht --processes --format csv
"$XHEAP" dump untraced.xht --processes --format json
# How processes ended, and why.
"$BUILD/tests/golden/make_trace" ended ended.xht
"$XHEAP" info ended.xht | sed -n '/^Processes/,$p'
"$XHEAP" info --format json ended.xht | sed -n 's/.*"end": /"end": /p'
"$XHEAP" info --format json ended.xht | sed -n '/"triggers"/,/]/p'
"$XHEAP" report ended.xht | sed -n 3,5p
"$XHEAP" report ended.xht -format json | sed -n '/"ends"/,/]/p'
