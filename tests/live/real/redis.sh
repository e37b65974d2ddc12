#!/bin/sh
# SPDX-License-Identifier: MIT
# A server with threads and jemalloc, on a socket in this directory, and its benchmark.
set -eu
socket=$PWD/socket
redis-server --port 0 --unixsocket "$socket" --save '' --daemonize no --logfile log --io-threads 2 &
for attempt in $(seq 500); do
	redis-cli -s "$socket" ping >/dev/null 2>&1 && break
	sleep 0.2
done
redis-benchmark -s "$socket" -q -n 3000 -c 10 -t set,lpush,sadd,hset >/dev/null
redis-cli -s "$socket" eval 'local t = {} for i = 1, 300 do t[i] = redis.call("set", "k" .. i, string.rep("x", i)) end return #t' 0
redis-cli -s "$socket" dbsize
redis-cli -s "$socket" shutdown nosave
wait
