#!/bin/sh
# SPDX-License-Identifier: MIT
# MariaDB's tests, a server and its clients, one line for each: name and result. Not as root, which the server refuses.
set -eu
quick="main.bool main.func_math main.select_safe main.type_year main.join main.union main.insert_select main.func_str"
area=$(mktemp -d)
trap 'rm -rf "$area"' EXIT
as=
if [ "$(id -u)" = 0 ]; then
	chown nobody "$area"
	as="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
cd /usr/share/mysql/mysql-test
set -- $quick
[ -z "${SOAK:-}" ] || set -- --suite=json,heap,innodb_zip --skip-rpl
$as env HOME="$area" ./mariadb-test-run --vardir="$area/var" --tmpdir="$area/tmp" --force --retry=0 --max-test-fail=0 \
	--testcase-timeout=10 "$@" >"$area/log" 2>&1 || echo "status $?"
sed -n 's/^\([a-z_0-9]*\.[^ ]*\) .*\[ \([a-z]*\) \].*/\1 \2/p; /^Completed/p' "$area/log" | sort >"$area/results"
cat "$area/results"
[ "$(wc -l <"$area/results")" -ge 9 ]
