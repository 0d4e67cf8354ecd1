# Prints what cluster up must know about a machine, one fact per line. It changes nothing.
# $1 is the directory of kube-bootstrap on machines.
say() { printf '%s %s\n' "$1" "$2"; }
encoded() { [ ! -e "$2" ] || say "$1" "$(base64 <"$2" | tr -d '\n')"; }
say arch "$(uname -m)"
say kernel "$(uname -s)"
say hostname "$(hostname)"
say id "$(cat /etc/machine-id 2>/dev/null)"
say clock "$(date +%s)"
# sudo removes the variable from the environment, and keeps it in its own.
say connection "${SSH_CONNECTION:-$(tr '\0' '\n' <"/proc/$PPID/environ" | sed -n 's/^SSH_CONNECTION=//p')}"
say addresses "$(ip -4 -o addr show 2>/dev/null | sed -n 's/.*inet \([0-9.]*\).*/\1/p' | tr '\n' ' ')"
# The PATH of a user may lack sbin. A removed Docker leaves its socket until the next boot.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
[ -e "$1/docker.installing" ] || ! command -v dockerd >/dev/null || say docker yes
for manager in apt-get dnf yum zypper apk; do
	! command -v "$manager" >/dev/null || { say packages "$manager"; break; }
done
say free "$(df -Pk /var/lib | sed -n '2p' | sed 's/  */ /g' | cut -d ' ' -f 4)"
say role "$(cat /var/lib/kube-bootstrap/role 2>/dev/null)"
[ ! -e /var/lib/kube-bootstrap/complete ] || say complete yes
encoded settings /var/lib/kube-bootstrap/config.yaml
encoded ca /etc/kubernetes/pki/ca.crt
cd "$1" 2>/dev/null && for file in bin/kube-bootstrap bundle.tar.zst packages/*; do
	is=$(stat -c '%s %Y' "$file" 2>/dev/null) || continue
	[ "$is" = "$(sed -n 2p "$file.digest" 2>/dev/null)" ] || continue
	say "digest:$file" "$(sed -n 1p "$file.digest")"
done
echo end
