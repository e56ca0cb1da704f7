#!/bin/sh
# Runs Takt and the yardsticks in turn on a private PostgreSQL and prints figures and ratios; see README.md.
#   RUNS (5)  SECONDS_EACH (20)  MODE (load | latency)  RATE (1000, of MODE=latency)  TAKT_FLAGS (more flags of takt bench run)
set -eu
cd "$(dirname "$0")/.."
RUNS=${RUNS:-5} EACH=${SECONDS_EACH:-20} MODE=${MODE:-load} RATE=${RATE:-1000}
work=$(mktemp -d "${TMPDIR:-/tmp}/takt-compare-XXXXXX")
chmod 755 "$work"

bin=
for dir in "$(dirname "$(command -v initdb 2>/dev/null || echo /none/initdb)")" /usr/lib/postgresql/*/bin; do
	[ -x "$dir/initdb" ] && bin=$dir
done
[ -n "$bin" ] || { echo "compare: PostgreSQL is not installed: no initdb in PATH or /usr/lib/postgresql/*/bin" >&2; exit 2; }

# PostgreSQL refuses to run as root.
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }
pid=
cleanup() {
	[ -n "$pid" ] || pid=$(head -n 1 "$work/pg/data/postmaster.pid" 2>/dev/null || true)
	[ -z "$pid" ] || kill -INT "$pid" 2>/dev/null || true
	[ -z "$pid" ] || while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

echo "building" >&2
go build -o "$work/takt" ./cmd/takt
(cd bench && go build -o "$work" ./pgref ./riverbench)

mkdir "$work/pg"
[ "$(id -u)" != 0 ] || chown postgres: "$work/pg"
as "$bin/initdb" -D "$work/pg/data" -U bench -A trust -E UTF8 --locale=C --no-instructions >"$work/initdb.log"
port=$(as sh -c 'for p in $(seq 54500 54600); do (exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null || { echo $p; break; }; done' 2>/dev/null || echo 54500)
as sh -c "cat >>'$work/pg/data/postgresql.conf'" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 100
shared_buffers = '1GB'
max_wal_size = '8GB'
checkpoint_timeout = '15min'
CONF
as "$bin/postgres" -D "$work/pg/data" >"$work/pg.log" 2>&1 &
sql() { PGOPTIONS='-c client_min_messages=error' "$bin/psql" -h 127.0.0.1 -p "$port" -U bench -d postgres -qAtc "$1"; }
for _ in $(seq 100); do sql 'select 1' >/dev/null 2>&1 && break; sleep 0.1; done
pid=$(head -n 1 "$work/pg/data/postmaster.pid")

# number FILE NAME: the first number that stands under a name in JSON
number() { grep -o "\"$2\": *[0-9.e+-]*" "$1" | head -n 1 | sed 's/.*: *//'; }

# fresh database for each run, so that nobody works in another's rows
one() {
	sql 'drop database if exists bench_run' && sql 'create database bench_run' && sql checkpoint
	BENCH_DSN="postgres://bench@127.0.0.1:$port/bench_run?sslmode=disable"
	export BENCH_DSN
	out=$work/out.json
	case $1-$MODE in
	takt-load) "$work/takt" bench run --db "$BENCH_DSN" --for "${EACH}s" -o json ${TAKT_FLAGS:-} >"$out" ;;
	takt-latency) "$work/takt" bench run --db "$BENCH_DSN" --for "${EACH}s" --rate "$RATE" -o json ${TAKT_FLAGS:-} >"$out" ;;
	reference-load) "$work/pgref" -dur "${EACH}s" -vacuum 5s -pgpid "$pid" >"$out" ;;
	reference-latency) "$work/pgref" -dur "${EACH}s" -rate "$RATE" -single -pgpid "$pid" >"$out" ;;
	river-load) "$work/riverbench" -mode e2e -workers 2000 -cooldown 2ms -dur "${EACH}s" -pgpid "$pid" >"$out" 2>"$work/river.log" ;;
	river-latency) "$work/riverbench" -mode latency -workers 2000 -cooldown 2ms -rate "$RATE" -dur "${EACH}s" -pgpid "$pid" >"$out" 2>"$work/river.log" ;;
	esac
	if [ "$MODE" = latency ]; then
		p50=$(number "$out" start_p50_ms) p99=$(number "$out" start_p99_ms)
		[ "$1" != takt ] || { p50=$(number "$out" p50Ms) p99=$(number "$out" p99Ms); } # requestToStart stands first
		[ -n "$p50" ] || { p50=$(number "$out" p50_ms) p99=$(number "$out" p99_ms); }
		echo "$1 $p50 $p99"
	elif [ "$1" = takt ]; then
		awk -v n="$(number "$out" executions)" -v r="$(number "$out" perSecond)" -v c="$(number "$out" processCpuSeconds)" \
			-v d="$(number "$out" databaseCpuSeconds)" 'BEGIN { printf "takt %.0f %.1f\n", r, (c + d) / n * 1e6 }'
	else
		awk -v name="$1" -v r="$(number "$out" rate)" -v c="$(number "$out" client_cpu_s)" -v d="$(number "$out" pg_cpu_s)" -v s="$EACH" \
			'BEGIN { printf "%s %.0f %.1f\n", name, r, (c + d) / (r * s) * 1e6 }'
	fi
}

head="per second, µs of CPU each"
[ "$MODE" = load ] || head="request to start at $RATE/s: p50 ms, p99 ms"
echo "round  system     $head"
for round in $(seq "$RUNS"); do
	for system in reference takt river; do
		line=$(one $system)
		echo "$line" >>"$work/all"
		echo "$line" | awk -v r="$round" '{ printf "%-6s %-10s %10s %10s\n", r, $1, $2, $3 }'
	done
done

# Pair by pair within a round, then the median over the rounds.
awk -v mode="$MODE" '
function median(list, n,   i, j, t) {
	for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{ k = ++seen[$1]; a[$1, k] = $2; b[$1, k] = $3 }
END {
	for (o = 1; o <= 2; o++) {
		other = o == 1 ? "reference" : "river"; n = seen["takt"]
		for (i = 1; i <= n; i++) { x[i] = a["takt", i] / a[other, i]; y[i] = b["takt", i] / b[other, i] }
		if (mode == "load") printf "takt / %s: %.2f of its rate, %.2f times its CPU (medians of %d rounds)\n", other, median(x, n), median(y, n), n
		else printf "takt / %s: p50 %.2f times, p99 %.2f times (medians of %d rounds)\n", other, median(x, n), median(y, n), n
	}
}' "$work/all"
