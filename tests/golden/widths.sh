# SPDX-License-Identifier: MIT
# Texts at 80, 120 and 200 columns, of programs in C++ with both libraries, Rust with both manglings, C, Python, and of several processes (traces/make made the traces).
# Names come from the traces only.
export XHEAP_DEBUG_PATH= XHEAP_INDEX_EVENTS=none TZ=UTC
unset DEBUGINFOD_URLS
# The packages that lack their symbols are this machine's.
without_packages() {
	awk '/^ *for names: / { match($0, /^ */); indent = RLENGTH; next }
		indent { match($0, /^ */); if (RLENGTH > indent) next; indent = 0 } 1'
}
{
for name in libstdcxx libcxx rust rust_v0 c python processes; do
	cp "$SOURCE/tests/golden/traces/$name.xht" .
	for width in 80 120 200; do
		echo "==== $name, $width columns"
		"$XHEAP" heap "$name.xht" -stacks -frames sp -tree -top 7 -width $width
	done
done
for width in 80 120 200; do
	echo "==== several processes, $width columns"
	"$XHEAP" info processes.xht -width $width
	"$XHEAP" heap processes.xht -frames -by process -top 5 -width $width
done
echo "==== lambdas, and lines"
"$XHEAP" heap libstdcxx.xht -requireFrames '*(unnamed)::operator()' -top 3 -width 80
"$XHEAP" heap libcxx.xht -requireFrames '*$_0*' -top 3 -width 80
"$XHEAP" heap libstdcxx.xht -lines -stacks -frames -cullFrames 'std::*' -top 4 -width 100
echo "==== the other extremes"
"$XHEAP" heap libstdcxx.xht -stacks -chains -top 2 -width 40
LC_ALL=C "$XHEAP" heap rust.xht -frames -top 5 -width 60
"$XHEAP" heap libcxx.xht -stacks -top 2 -width 80 -allFrames
"$XHEAP" heap libcxx.xht -stacks -top 1 -fullNames
} | without_packages
