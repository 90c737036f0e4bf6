#!/bin/sh
# Installs the Stakeout agent that a Stakeout server serves.
#
#   curl -fsSL SERVER/install.sh | sudo sh
#   curl -fsSL SERVER/install.sh | sudo sh -s -- --help
#
# Everything is a function until the last line, so that a script that was cut off in the middle does nothing at all.

set -eu

# The server fills these in.
SERVER_URL='@SERVER_URL@'
VERSION='@VERSION@'
SHA256_X86_64='@SHA256_X86_64@'
SHA256_AARCH64='@SHA256_AARCH64@'

CONFIG_DIR=/etc/stakeout-agent
STATE_DIR=/var/lib/stakeout-agent
UNIT_FILE=/etc/systemd/system/stakeout-agent.service
UNIT=stakeout-agent.service
PID_FILE=/run/stakeout-agent.pid

usage() {
	cat <<'USAGE'
Installs the Stakeout agent as a systemd service.

  curl -fsSL SERVER/install.sh | sudo sh -s -- [options]

  --no-service       install, but run the agent here in the foreground instead of as a service
  --uninstall        stop the agent and remove everything, what waits to be sent included
  --token-file FILE  the token for sending; otherwise $STAKEOUT_TOKEN, the installed one, or a question
  --ca-file FILE     PEM certificates to trust beside the system's
  --server URL       another server than the one that served this script
  --prefix DIR       the program goes to DIR/bin (default: /usr/local)
  --help             this text

It needs Linux 5.10 or newer with BTF on x86-64 or arm64, root, and curl or GNU wget.
USAGE
}

say() {
	printf 'stakeout: %s\n' "$*"
}

die() {
	printf 'stakeout: error: %s\n' "$*" >&2
	exit 1
}

# --- arguments ---

# A value must follow; $1 is the option, $2 how many arguments are left.
need_value() {
	[ "$2" -ge 2 ] || die "$1 needs a value; --help explains"
}

parse_arguments() {
	service=yes
	uninstall=no
	token_source=''
	ca_source=''
	prefix=''
	while [ $# -gt 0 ]; do
		case $1 in
		--no-service) service=no ;;
		--uninstall) uninstall=yes ;;
		--token-file | --ca-file | --server | --prefix)
			need_value "$1" $#
			case $1 in
			--token-file) token_source=$2 ;;
			--ca-file) ca_source=$2 ;;
			--server) SERVER_URL=${2%/} ;;
			--prefix) prefix=${2%/} ;;
			esac
			shift
			;;
		--help | -h)
			usage
			exit 0
			;;
		*) die "unknown option $1; --help lists them" ;;
		esac
		shift
	done
	if [ -z "$prefix" ] && [ -r "$CONFIG_DIR/prefix" ]; then
		prefix=$(cat "$CONFIG_DIR/prefix")
	fi
	prefix=${prefix:-/usr/local}
	case $prefix in
	/*) ;;
	*) die "--prefix $prefix: give an absolute path" ;;
	esac
	case $prefix in
	*[!A-Za-z0-9/._-]*) die "--prefix $prefix: only letters, digits and / . _ - are possible" ;;
	esac
	program=$prefix/bin/stakeout-agent
}

# --- what this machine must offer ---

check_root() {
	[ "$(id -u)" = 0 ] || die "root is needed: pipe the script into 'sudo sh' instead of 'sh'"
}

check_machine() {
	[ "$(uname -s)" = Linux ] || die "$(uname -s) is not supported: the agent needs Linux"
	case $(uname -m) in
	x86_64 | amd64) arch=x86_64 checksum=$SHA256_X86_64 ;;
	aarch64 | arm64) arch=aarch64 checksum=$SHA256_AARCH64 ;;
	*) die "$(uname -m) is not supported: the agent runs on x86-64 and arm64" ;;
	esac
	release=$(uname -r)
	major=${release%%.*}
	minor=${release#*.}
	minor=${minor%%[!0-9]*}
	if [ "$major" -lt 5 ] || { [ "$major" -eq 5 ] && [ "${minor:-0}" -lt 10 ]; }; then
		die "Linux $release is too old: the agent needs 5.10 or newer"
	fi
	[ -r /sys/kernel/btf/vmlinux ] ||
		die "this kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with CONFIG_DEBUG_INFO_BTF=y, or /sys is not mounted"
	command -v sha256sum >/dev/null 2>&1 || die "sha256sum is missing: install coreutils"
	if [ "$service" = yes ] && [ ! -d /run/systemd/system ]; then
		die "systemd does not run here: --no-service runs the agent in the foreground instead"
	fi
}

check_server() {
	case $SERVER_URL in
	http://?* | https://?*) ;;
	@*) die "this copy of the script knows no server: fetch it from one, or give --server URL" ;;
	*) die "$SERVER_URL is not a URL: it begins with http:// or https://" ;;
	esac
	case $SERVER_URL in
	*[!]A-Za-z0-9:/.%_~[-]*) die "$SERVER_URL: a character in it has no place in a server's URL" ;;
	esac
	case $checksum in
	*[!0-9a-f]* | '') die "the server has no agent for $arch to offer" ;;
	esac
	[ ${#checksum} -eq 64 ] || die "the server's checksum for $arch is damaged: fetch the script again"
}

# --- talking to the server ---

choose_client() {
	if command -v curl >/dev/null 2>&1; then
		client=curl
	elif wget --version 2>/dev/null | grep -q 'GNU Wget'; then
		client=wget
	else
		die "curl is missing: install it (GNU wget would do too)"
	fi
}

# Prints the status of GET $1 with the token, 000 without an answer; the body goes to file $2. The token goes through
# a file, since every user can read a command line.
get() {
	if [ "$client" = curl ]; then
		{
			[ -z "$token" ] || printf 'header = "Authorization: Bearer %s"\n' "$token"
			[ -z "$ca_source" ] || printf 'cacert = "%s"\n' "$ca_source"
		} >"$work/request"
		curl --silent --show-error --connect-timeout 15 --max-time 600 --config "$work/request" \
			--output "$2" --write-out '%{http_code}' "$1" 2>"$work/problem" || true
	else
		{
			[ -z "$token" ] || printf 'header = Authorization: Bearer %s\n' "$token"
			[ -z "$ca_source" ] || printf 'ca_certificate = %s\n' "$ca_source"
		} >"$work/request"
		wget --config="$work/request" --server-response --max-redirect=0 --tries=1 --timeout=60 --output-document="$2" "$1" \
			2>"$work/problem" || true
		status=$(sed -n 's|^ *HTTP/[0-9.]* \([0-9][0-9][0-9]\).*|\1|p' "$work/problem" | tail -n 1)
		printf '%s' "${status:-000}"
	fi
}

# The line of the client's output that says most.
problem() {
	grep -v '^ *$' "$work/problem" 2>/dev/null | tail -n 1 | sed 's/[. ]*$//'
}

read_token() {
	token=${STAKEOUT_TOKEN:-}
	if [ -n "$token_source" ]; then
		[ -r "$token_source" ] || die "--token-file $token_source cannot be read"
		token=$(cat "$token_source")
	elif [ -z "$token" ] && [ -r "$CONFIG_DIR/token" ]; then
		token=$(cat "$CONFIG_DIR/token")
	fi
	unset STAKEOUT_TOKEN
	check_token_text
}

check_token_text() {
	case $token in
	*[!A-Za-z0-9._~+/=-]*) die "the token holds a character that no token has: is it the right file?" ;;
	esac
}

# Sets `answer` to what the server says of the token.
ask_server() {
	answer=$(get "$SERVER_URL/api/v1/ingest-check" "$work/answer")
}

check_token() {
	ask_server
	if [ "$answer" = 401 ] && [ -z "$token" ] && ask_token; then
		ask_server
	fi
	case $answer in
	200 | 204) ;;
	401 | 403)
		[ -n "$token" ] || die "the server asks for a token: give it with --token-file FILE or in \$STAKEOUT_TOKEN. Nothing was changed."
		die "the server refuses the token. Nothing was changed."
		;;
	000) die "$SERVER_URL cannot be reached: $(problem). Nothing was changed." ;;
	*) die "$SERVER_URL answered $answer: no Stakeout server is there. Nothing was changed." ;;
	esac
}

# Asks on the terminal, where there is one: standard input is this script.
ask_token() {
	[ -t 2 ] && [ -r /dev/tty ] || return 1
	printf 'stakeout: the token for sending: ' >&2
	stty -echo </dev/tty 2>/dev/null || true
	read -r token </dev/tty || token=''
	stty echo </dev/tty 2>/dev/null || true
	printf '\n' >&2
	check_token_text
	[ -n "$token" ]
}

# --- files ---

# True when file $1 is the agent that the server serves.
is_the_agent() {
	[ -f "$1" ] && printf '%s  %s\n' "$checksum" "$1" | sha256sum -c >/dev/null 2>&1
}

# Puts standard input to file $1 with mode $2, whole or not at all, and only if something is different.
place() {
	cat >"$work/new"
	if [ -f "$1" ] && [ "$(cat "$1"; echo .)" = "$(cat "$work/new"; echo .)" ]; then
		chmod "$2" "$1"
		return 0
	fi
	next=$(mktemp "$1.XXXXXX")
	chmod "$2" "$next"
	cat "$work/new" >"$next"
	mv -f "$next" "$1"
	changed=yes
	say "wrote $1"
}

place_program() {
	if is_the_agent "$program"; then
		return 0
	fi
	mkdir -p "$prefix/bin"
	download=$(mktemp "$prefix/bin/.stakeout-agent.XXXXXX")
	say "downloading the agent $VERSION for $arch from $SERVER_URL"
	answer=$(get "$SERVER_URL/download/stakeout-agent-linux-$arch" "$download")
	[ "$answer" = 200 ] || die "the download failed ($answer): $(problem). Nothing was changed."
	is_the_agent "$download" ||
		die "the download's SHA-256 is not $checksum: it is damaged or not what the server announced. Nothing was changed."
	chmod 755 "$download"
	"$download" --version >/dev/null 2>"$work/problem" ||
		die "the agent does not run on this system: $(problem). Nothing was changed."
	mv -f "$download" "$program"
	download=''
	changed=yes
	say "wrote $program"
}

settings() {
	cat <<SETTINGS
# Written by the install script, which overwrites it. Your own settings go to local.env beside it, one a line:
# STAKEOUT_FREQUENCY=49 and so on, as in 'stakeout-agent --help'.
STAKEOUT_SERVER=$SERVER_URL
STAKEOUT_STATE_DIR=$STATE_DIR
SETTINGS
	[ -z "$token" ] || printf 'STAKEOUT_TOKEN_FILE=%s/token\n' "$CONFIG_DIR"
	[ ! -f "$CONFIG_DIR/ca.pem" ] || printf 'STAKEOUT_CA_FILE=%s/ca.pem\n' "$CONFIG_DIR"
}

place_settings() {
	if [ ! -d "$CONFIG_DIR" ]; then
		mkdir -p "$CONFIG_DIR"
	fi
	chmod 755 "$CONFIG_DIR"
	[ -z "$token" ] || printf '%s\n' "$token" | place "$CONFIG_DIR/token" 600
	if [ -n "$ca_source" ] && [ "$ca_source" != "$CONFIG_DIR/ca.pem" ]; then
		place "$CONFIG_DIR/ca.pem" 644 <"$ca_source"
	fi
	if [ "$prefix" != /usr/local ]; then
		printf '%s\n' "$prefix" | place "$CONFIG_DIR/prefix" 644
	fi
	settings >"$work/settings"
	place "$CONFIG_DIR/agent.env" 644 <"$work/settings"
}

# The same as agent/packaging/stakeout-agent.service; a test compares them.
unit() {
	cat <<'UNIT'
[Unit]
Description=Stakeout agent: samples the stacks of everything that runs on this machine
Documentation=https://github.com/stakeout/stakeout
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
# The first file is the install script's, the second one yours: every flag as in `stakeout-agent --help`.
EnvironmentFile=/etc/stakeout-agent/agent.env
EnvironmentFile=-/etc/stakeout-agent/local.env
ExecStart=/usr/local/bin/stakeout-agent
Restart=always
RestartSec=5
# A stop sends what it can for ten seconds; the rest waits on the disk.
TimeoutStopSec=30
StateDirectory=stakeout-agent
StateDirectoryMode=0700
UMask=0077

# Before Linux 5.11 BPF maps count as locked memory.
LimitMEMLOCK=infinity
# Each process that is being named takes a few descriptors, each CPU two.
LimitNOFILE=65536
# A backstop, with BPF maps and the page cache of symbol tables included; the agent bounds itself far below.
MemoryMax=512M
OOMScoreAdjust=250

CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_CHECKPOINT_RESTORE CAP_DAC_READ_SEARCH CAP_SYSLOG
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
RemoveIPC=yes
KeyringMode=private
# What ProtectKernelTunables=yes would make read-only, without /proc/kallsyms, which it would hide.
ReadOnlyPaths=-/proc/sys -/proc/sysrq-trigger -/proc/irq -/proc/bus -/proc/fs -/proc/acpi -/sys
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @keyring @module @mount @obsolete @raw-io @reboot @swap
# Left out because a profiler needs what they hide: ProtectKernelTunables (/proc/kallsyms; see ReadOnlyPaths),
# ProtectKernelLogs (CAP_SYSLOG, without which kallsyms reads zero), ProtectKernelModules (symbols of modules),
# ProtectProc and PrivateUsers (other processes), PrivateTmp (/tmp/perf-PID.map).

[Install]
WantedBy=multi-user.target
UNIT
}

# --- running ---

# Prints the process that --no-service started, if it still runs.
foreground_pid() {
	[ -r "$PID_FILE" ] || return 1
	pid=$(cat "$PID_FILE")
	case $(readlink "/proc/$pid/exe" 2>/dev/null) in
	*/stakeout-agent | */"stakeout-agent (deleted)") printf '%s\n' "$pid" ;;
	*) return 1 ;;
	esac
}

run_service() {
	unit | sed "s|^ExecStart=.*|ExecStart=$program|" >"$work/unit"
	# Above 2, as Debian's kernels begin, perf events are only opened for CAP_SYS_ADMIN.
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 2)
	if [ "$paranoid" -gt 2 ] 2>/dev/null; then
		sed 's/^CapabilityBoundingSet=.*/& CAP_SYS_ADMIN/' "$work/unit" >"$work/unit.admin"
		mv "$work/unit.admin" "$work/unit"
		say "kernel.perf_event_paranoid is $paranoid: the service gets CAP_SYS_ADMIN too, or this kernel would open no timer for it"
	fi
	place "$UNIT_FILE" 644 <"$work/unit"
	if [ "$changed" = no ] && systemctl is-enabled --quiet "$UNIT" && systemctl is-active --quiet "$UNIT"; then
		say "the agent $VERSION is installed and runs: nothing to change"
		return 0
	fi
	systemctl daemon-reload
	systemctl enable --quiet "$UNIT"
	systemctl restart "$UNIT"
	say "the agent $VERSION runs as $UNIT and sends to $SERVER_URL"
	say "its log: journalctl -u $UNIT"
}

run_foreground() {
	if pid=$(foreground_pid); then
		[ "$changed" = no ] || die "an agent still runs with what was installed before: end process $pid and run this again"
		say "the agent $VERSION is installed and runs as process $pid: nothing to change"
		return 0
	fi
	[ "$changed" = yes ] || say "the agent $VERSION is installed: nothing to change"
	say "starting it in the foreground; Ctrl-C ends it"
	mkdir -p "$STATE_DIR"
	chmod 700 "$STATE_DIR"
	set -a
	# shellcheck source=/dev/null
	. "$CONFIG_DIR/agent.env"
	if [ -r "$CONFIG_DIR/local.env" ]; then
		# shellcheck source=/dev/null
		. "$CONFIG_DIR/local.env"
	fi
	set +a
	printf '%s\n' $$ >"$PID_FILE"
	clean_up
	# Its standard input would otherwise be the rest of this script.
	exec "$program" </dev/null
}

stop_foreground() {
	pid=$(foreground_pid) || return 0
	say "stopping process $pid"
	kill -TERM "$pid"
	waited=0
	while foreground_pid >/dev/null; do
		if [ "$waited" -ge 30 ]; then
			kill -KILL "$pid" 2>/dev/null || true
			break
		fi
		sleep 1
		waited=$((waited + 1))
	done
}

remove_everything() {
	found=no
	for path in "$UNIT_FILE" "$program" "$CONFIG_DIR" "$STATE_DIR" "$PID_FILE"; do
		[ ! -e "$path" ] || found=yes
	done
	if [ "$found" = no ]; then
		say "no agent is installed: nothing to remove"
		return 0
	fi
	if [ -e "$UNIT_FILE" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now --quiet "$UNIT" || true
	fi
	stop_foreground
	rm -f "$UNIT_FILE" "$program" "$PID_FILE"
	rm -rf "$CONFIG_DIR" "$STATE_DIR"
	if [ "$prefix" != /usr/local ]; then
		# Only what is empty goes.
		rmdir "$prefix/bin" "$prefix" 2>/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl reset-failed "$UNIT" 2>/dev/null || true
	fi
	say "the agent is gone, and with it $program, $CONFIG_DIR and $STATE_DIR"
}

clean_up() {
	if [ -n "${download:-}" ]; then
		rm -f "$download"
	fi
	if [ -n "${work:-}" ]; then
		rm -rf "$work"
	fi
}

main() {
	parse_arguments "$@"
	check_root
	if [ "$uninstall" = yes ]; then
		remove_everything
		return 0
	fi
	check_machine
	check_server
	choose_client
	umask 022
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	work=$(mktemp -d)
	changed=no
	if [ -z "$ca_source" ] && [ -r "$CONFIG_DIR/ca.pem" ]; then
		ca_source=$CONFIG_DIR/ca.pem
	elif [ -n "$ca_source" ] && [ ! -r "$ca_source" ]; then
		die "--ca-file $ca_source cannot be read"
	fi
	read_token
	check_token
	place_program
	place_settings
	if [ "$service" = yes ]; then
		run_service
	else
		run_foreground
	fi
}

# In braces, so that a cut inside this line is a syntax error too.
{ main "$@"; exit $?; }
