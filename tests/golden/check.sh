# SPDX-License-Identifier: MIT
export LC_ALL=C
"$BUILD/tests/golden/make_trace" plain plain.xht
"$BUILD/tests/golden/make_trace" losses losses.xht
cat >holds.budget <<'END'
# All of them hold.
peak <= 1 MiB
blocks <= 100 +5%  # with room
outstanding in app+0x1000 <= 1 MiB
END
cat >exceeded.budget <<'END'
bytes <= 64 KiB +5%
outstanding <= 2 blocks
blocks self app+0x3000 <= 1
peak in app+0x3000 except app+0x2000 <= 10
temporary in nowhere <= 3
bytes thread 101 <= 100
END
check() {
	echo "-- $*"
	"$XHEAP" check "$@"
	echo "-- status $?"
}
check plain.xht --budget holds.budget
check plain.xht --budget exceeded.budget --junit plain.xml
cat plain.xml
check plain.xht --budget exceeded.budget --format json
check plain.xht --budget exceeded.budget --github | sed 's/\(stop-commands\)\?::[0-9a-f]\{32\}/\1::TOKEN/'
check losses.xht --budget holds.budget
check losses.xht --budget holds.budget --allow-incomplete
check plain.xht losses.xht --budget exceeded.budget --strict --top 1
cat >learned.budget <<'END'
# A comment stays.
peak   <= 1 MiB   # so does this
outstanding <= 10 blocks +50%
	bytes self app+0x3000 <= 3
blocks <= 100 fixed
temporary in nowhere <= 3
END
check plain.xht --budget learned.budget --update
cat learned.budget
check plain.xht --budget learned.budget --update
check plain.xht losses.xht --budget learned.budget --update
check plain.xht losses.xht --budget learned.budget --update --allow-incomplete
cat learned.budget
check plain.xht --budget new.budget --update
cat new.budget
check plain.xht --budget new.budget
check losses.xht plain.xht --fail-above 5%
check losses.xht plain.xht --fail-above 5% --allow-incomplete --by function --least 1 --top 1
check plain.xht -- plain.xht plain.xht --fail-above 0% --github --junit same.xml | sed 's/\(stop-commands\)\?::[0-9a-f]\{32\}/\1::TOKEN/'
grep property same.xml
# Of what is never freed alone: the others may have 51 times as much.
check losses.xht plain.xht --fail-above 5000% --outstanding-above 0% --allow-incomplete --top 1
check losses.xht plain.xht --fail-above 5000% --outstanding-above 64K
check plain.xht --budget holds.budget --outstanding-above 5%
check losses.xht plain.xht --fail-above 64K
check losses.xht plain.xht -- --fail-above
check plain.xht losses.xht plain.xht --fail-above 5%
# Where both would read alike, all digits are there.
echo 'bytes <= 70,250' >close.budget
check plain.xht --budget close.budget --top 0
# A mistyped word is refused with its place; a mistyped name matches nothing, which the last line says.
echo 'peek <= 1 MiB' >mistyped.budget
check plain.xht --budget mistyped.budget
echo 'bytes in ap+0x1000 <= 1 MiB' >mistyped.budget
check plain.xht --budget mistyped.budget
check plain.xht --budget mistyped.budget --strict
