#!/bin/sh
# kernel.sh DIR MIRROR: a Linux that runs as a process (User-mode Linux) from Debian's source of it, DIR/linux, and its
# modules, DIR/modules.tar. Debian's own packages of it crash on processors with AMX, or lack the modules of iptables.
# It compiles for about 15 minutes on two CPUs.
set -eu
dir=$1 mirror=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "$dir/kernel.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Only the kernel of the newest Debian works on processors with AMX. The package lists of that Debian expire.
mmdebstrap --quiet --variant=extract --include=linux-source --aptopt='Acquire::Check-Valid-Until "false"' \
	forky "$work/packages" "deb $mirror forky main"
mkdir "$work/source"
tar -C "$work/source" --strip-components=1 -xf "$work"/packages/usr/src/linux-source-*.tar.xz
cd "$work/source"
# The kubelet does not start without the clock speed of the processor, which User-mode Linux does not report.
sed -i '0,/seq_printf(m, "fpu/s//seq_puts(m, "cpu MHz\\t\\t: 2000.000\\n");\n\tseq_printf(m, "fpu/' \
	arch/um/kernel/um_arch.c
grep -q 'cpu MHz' arch/um/kernel/um_arch.c
export ARCH=um
make -s defconfig
./scripts/kconfig/merge_config.sh -m .config "$here/kernel.config" >/dev/null
make -s olddefconfig
make -s -j"$(nproc)" linux modules
make -s modules_install INSTALL_MOD_PATH="$work/installed" INSTALL_MOD_STRIP=1
tar -C "$work/installed" -cf "$dir/modules.tar" lib
mv linux "$dir/linux"
