# SPDX-License-Identifier: MIT
# A trace that is followed while it grows has the table, and at each look the sums, of one that is matched at once.
tools=$BUILD/tests/golden
rounds=2
[ -n "$QUICK" ] && rounds=1
[ -n "$SOAK" ] && rounds=100
for seed in 1 2 3; do
	"$tools/make_trace" random "random$seed.xht" "$seed" 3000
	"$tools/make_trace" nested "nested$seed.xht" "$seed" 1200
done
for kind in plain forks together losses earlier untraced circular resident growing limited ended actions sampled; do
	"$tools/make_trace" "$kind" "$kind.xht"
done
for seed in $(seq 1 15); do
	"$tools/make_mixed" "mixed$seed.xht" "$seed" 1200
done
for least in each usual points; do
	"$tools/grown_$least" "$rounds" "$SOURCE"/tests/golden/traces/*.xht "$SOURCE"/tests/older/*.xht ./*.xht 2>>counts
done
true
