#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# Runs as the first process of the machine that yama.py starts: every way to trace, as an ordinary user and as root, at each value of
# kernel.yama.ptrace_scope. What came of it goes to the second serial port; yama.py judges it.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /tmp /out
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
chmod 1777 /out
echo root:x:0:0:root:/:/bin/sh >/etc/passwd
echo somebody:x:1000:1000:somebody:/tmp:/bin/sh >>/etc/passwd
export PATH=/usr/bin:/bin HOME=/tmp
cd /out || exit

# CASE, then a command line; as somebody, or as root. Leaves CASE.said and CASE.status.
somebody() {
	run=$1
	shift
	su somebody -s /bin/sh -c "$*" >"$run.said" 2>&1 </dev/null
	echo $? >"$run.status"
}
root() {
	run=$1
	shift
	sh -c "$*" >"$run.said" 2>&1 </dev/null
	echo $? >"$run.status"
}
# CASE, who attaches, the KIND of target (attached.c), which is somebody's and no child of who attaches.
attach() {
	rm -f /tmp/input
	mkfifo /tmp/input
	su somebody -s /bin/sh -c "exec attached $3 2" </tmp/input >/dev/null 2>&1 &
	target=$!
	exec 3>/tmp/input
	sleep 1
	"$2" "$1" "xheap record -o $1.xht -p $(pidof attached) --duration 500ms"
	exec 3>&-
	wait $target
	echo $? >"$1.target"
}

echo "a real program"
mkdir -m 1777 log
root real "CALL_LOG_RECORDS=60000 xheap record -o real.xht with CALL_LOG=/out/log LD_PRELOAD=/usr/bin/oracle.so perl /usr/bin/real.pl"

for scope in 0 1 2 3; do
	echo "ptrace_scope $scope"
	echo $scope >/proc/sys/kernel/yama/ptrace_scope
	attach own.$scope somebody count
	attach anybody.$scope somebody anybody
	attach root.$scope root count
	somebody command.$scope "xheap record -o command.$scope.xht churn 1"
	somebody children.$scope "xheap record -o children.$scope.xht dash -c 'churn 1; (churn 1 & churn 1; wait); true'"
	somebody launch.$scope "xheap start s -o launch.$scope.xht && xheap launch s -- churn 1; status=\$?; xheap stop s; exit \$status"
	# One that is forked, loads nothing, executes nothing, and lives on when the session ends.
	somebody forked.$scope "rm -f /tmp/held; mkfifo /tmp/held; xheap start s -o forked.$scope.xht && { xheap launch s -- dash -c '(x=some; y=more; read line </tmp/held; exit 5) & wait \$!' &
		last=\$!; sleep 3; xheap stop s; (echo >/tmp/held &); wait \$last; }"
	root root_command.$scope "xheap record -o root_command.$scope.xht churn 1"
done
uname -r >kernel
echo "done"
stty -F /dev/ttyS1 raw
tar cz . >/dev/ttyS1
sleep 1
poweroff -f
