#!/bin/sh
# SPDX-License-Identifier: MIT
# A server with a worker process, on a socket in this directory, and some requests.
set -eu
mkdir pages
seq 2000 >pages/index.html
cat >nginx.conf <<END
worker_processes 1;
pid $PWD/pid;
error_log $PWD/error.log;
events { worker_connections 64; }
http {
	access_log $PWD/access.log;
	client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
	server { listen unix:$PWD/socket; gzip on; gzip_types *; gzip_min_length 1; root $PWD/pages; }
}
END
chmod 755 . pages
nginx -p "$PWD" -c "$PWD/nginx.conf" -g 'daemon off;' 2>/dev/null &
for attempt in $(seq 1000); do
	[ -S socket ] && break
	sleep 0.1
done
for request in 1 2 3 4 5 6; do
	curl -s --unix-socket socket -H 'Accept-Encoding: gzip' http://localhost/ | wc -c
	curl -s --unix-socket socket -o /dev/null -w '%{http_code}\n' "http://localhost/missing$request"
done
nginx -p "$PWD" -c "$PWD/nginx.conf" -g 'daemon off;' -s quit 2>/dev/null
wait
wc -l <access.log
