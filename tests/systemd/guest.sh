# shellcheck shell=bash
# How a guest is made and run; sourced by `run`, whose variables it uses.
# shellcheck disable=SC2154 # cache, suite, work, here, word, seconds, load are the caller's

# Leaves out what a guest without hardware and network has no use for: getty waits 90 s
# for a terminal that only udev would announce.
GUEST_MASKED='getty.target console-getty.service systemd-logind.service modprobe@.service
 systemd-modules-load.service systemd-random-seed.service systemd-update-utmp.service
 systemd-update-utmp-runlevel.service systemd-journal-flush.service systemd-pstore.service
 systemd-hwdb-update.service systemd-networkd.service systemd-resolved.service
 systemd-ask-password-wall.path systemd-ask-password-console.path
 dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount
 sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount
 apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer'

guest_apt_updated=
guest_apt_update() {
    [ -n "$guest_apt_updated" ] || apt-get -qq update >>"$cache/apt.log" 2>&1 || true
    guest_apt_updated=yes
}

# --no-remove: another QEMU package of this machine must not go for ours.
guest_tools() {
    local missing=()
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    command -v cpio >/dev/null || missing+=(cpio)
    [ ${#missing[@]} -gt 0 ] || return 0
    guest_apt_update
    apt-get -qqy install --no-install-recommends --no-remove "${missing[@]}" >>"$cache/apt.log" 2>&1 ||
        { tail -n 20 "$cache/apt.log" >&2; fail "apt-get can not install ${missing[*]}"; }
}

# The Debian mirror that this machine uses itself.
guest_mirror() {
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 == "main" && $1 !~ /security/ {print $1; exit}')
    [ -n "$mirror" ] || fail "apt knows no Debian mirror"
    echo "${mirror%/}"
}

guest_tree() {
    tree=$cache/$suite-4
    [ ! -e "$tree/ready" ] || return 0
    say "making a $suite"
    local build=$cache/$suite.build where=$cache packages=systemd,systemd-sysv,systemd-container,dbus,procps,passwd unit hooks=()
    [ "$(stat -f -c %T /dev/shm)" != tmpfs ] || [ "$(df --output=avail -m /dev/shm | tail -n 1)" -lt 2000 ] || where=/dev/shm
    build=$(mktemp -d "$where/brig-guest-$suite.XXXXXX")
    chmod 755 "$build"
    # Instead of usrmerge, which brings all of perl.
    [ "$suite" != bookworm ] || packages+=,usr-is-merged
    [ ! -d /usr/share/mmdebstrap/hooks/merged-usr ] || hooks+=(--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr)
    mmdebstrap --quiet --variant=essential "${hooks[@]}" --include="$packages" --dpkgopt=force-unsafe-io \
        --aptopt='APT::Install-Recommends "false"' "$suite" "$build/root" "$(guest_mirror)" >"$cache/mmdebstrap.log" 2>&1 ||
        { tail -n 20 "$cache/mmdebstrap.log" >&2; rm -rf "$build"; fail "mmdebstrap can not make a $suite"; }
    local root=$build/root
    rm -rf "$root"/usr/share/{doc,man,locale,info,i18n} "$root"/usr/lib/udev/hwdb.d "$root"/boot "$root"/var/lib/apt/lists
    for unit in $GUEST_MASKED; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
    ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
    echo guest >"$root/etc/hostname"
    : >"$root/etc/fstab"
    echo 5f0c0d1be5e24a35a2d0d0a1b5bd6c10 >"$root/etc/machine-id"
    mkdir -p "$root/etc/systemd/journald.conf.d" "$root/brig"
    printf '[Journal]\nStorage=volatile\nRateLimitBurst=0\n' >"$root/etc/systemd/journald.conf.d/guest.conf"
    cat >"$root/etc/systemd/system/brig-cases.service" <<'UNIT'
[Unit]
Description=Cases of brig
After=multi-user.target
[Service]
ExecStart=/bin/bash /brig/inside.sh
KillMode=process
UNIT
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    ln -sf ../brig-cases.service "$root/etc/systemd/system/multi-user.target.wants/"
    # pivot_root(2) refuses the kernel's rootfs, so / becomes a mount first; without a
    # /proc below it, which would let user namespaces mount one where they can not.
    printf '#!/bin/sh\nmount -n --bind / /mnt\ncd /mnt\nmount -n --move . /\nexec chroot . /lib/systemd/systemd "$@"\n' >"$root/init"
    chmod 755 "$root/init"
    (cd "$root" && find . -xdev -print0 | sort -z | cpio -0oH newc --quiet) >"$build/tree.cpio"
    rm -rf "$tree"
    cp -a "$build" "$tree"
    rm -rf "$build"
    touch "$tree/ready"
}

# guest_apt COMMAND…: apt over the suite's own list, in a folder of its own, for what the
# guest has and not for what this machine has.
guest_apt() {
    local at=$tree/apt
    if [ ! -e "$at/list" ]; then
        mkdir -p "$at/lists/partial" "$at/cache/archives/partial"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(guest_mirror) $suite main" >"$at/list"
    fi
    "$1" -o "Dir::Etc::sourcelist=$at/list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$at/lists" -o "Dir::Cache=$at/cache" \
        -o "Dir::State::status=$tree/root/var/lib/dpkg/status" -o APT::Sandbox::User=root -o APT::Update::Post-Invoke-Success::= \
        -o Acquire::Languages=none -qq "${@:2}"
}

# The suite's own cloud kernel: unpacked only, it has what is needed built in.
guest_kernel() {
    [ ! -e "$tree/vmlinuz" ] || return 0
    say "fetching the kernel of $suite"
    local package
    rm -rf "$tree/apt"
    (
        guest_apt apt-get update
        cd "$tree/apt"
        package=$(guest_apt apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
        guest_apt apt-get download "$package"
        dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x --wildcards './boot/vmlinuz-*'
        mv boot/vmlinuz-* "$tree/vmlinuz"
    ) >"$cache/kernel.log" 2>&1 || { tail -n 20 "$cache/kernel.log" >&2; fail "no kernel"; }
    rm -rf "$tree/apt"
}

# The tool of the other kind of package, for the guest that tries it. Perl, which is half
# of all, only its tools for builders want.
guest_rpm() {
    command -v rpmbuild >/dev/null || fail "92-rpm needs rpmbuild: apt-get install rpm"
    [ ! -e "$tree/rpm/ready" ] || return 0
    say "fetching rpm of $suite"
    rm -rf "$tree/apt" "$tree/rpm"
    mkdir -p "$tree/rpm"
    local packages
    (
        guest_apt apt-get update
        guest_apt apt-get install --print-uris --yes --no-install-recommends rpm >"$tree/apt/wanted"
        mapfile -t packages < <(awk '/^.http/ {split($2, name, "_"); print name[1]}' "$tree/apt/wanted" | grep -Ev '^(lib)?(perl|gdbm)|^debugedit')
        cd "$tree/rpm"
        [ ${#packages[@]} -gt 0 ] && guest_apt apt-get download "${packages[@]}" && touch ready
    ) >"$cache/rpm.log" 2>&1 || { tail -n 20 "$cache/rpm.log" >&2; fail "no rpm"; }
    rm -rf "$tree/apt"
}

# guest_package NAME: one package for the guest that tries it, into a folder of that name; in
# the tree it would take part everywhere.
guest_package() {
    [ ! -e "$tree/$1/ready" ] || return 0
    say "fetching $1 of $suite"
    rm -rf "$tree/apt" "${tree:?}/$1"
    mkdir -p "$tree/$1"
    (
        guest_apt apt-get update
        cd "$tree/$1"
        guest_apt apt-get download "$1" && touch ready
    ) >"$cache/$1.log" 2>&1 || { tail -n 20 "$cache/$1.log" >&2; fail "no $1"; }
    rm -rf "$tree/apt"
}

# QEMU is unpacked beside the guests rather than installed: its packages do not go
# together with what some machines have of it.
guest_qemu() {
    qemu=(qemu-system-x86_64)
    ! command -v qemu-system-x86_64 >/dev/null || return 0
    local at=$cache/qemu packages
    if [ ! -e "$at/ready" ]; then
        say "fetching QEMU"
        guest_apt_update
        rm -rf "$at"
        mkdir -p "$at/packages"
        (
            cd "$at/packages"
            packages=$(apt-get install -s --no-install-recommends qemu-system-x86 | awk '/^Inst/ {print $2}')
            # shellcheck disable=SC2086 # a list of names
            apt-get -qq -o APT::Sandbox::User=root download $packages
            for package in *.deb; do dpkg-deb -x "$package" "$at"; done
        ) >>"$cache/apt.log" 2>&1 || { tail -n 20 "$cache/apt.log" >&2; fail "no QEMU"; }
        rm -rf "$at/packages"
        touch "$at/ready"
    fi
    local lib=$at/usr/lib/x86_64-linux-gnu
    qemu=(env "LD_LIBRARY_PATH=$lib:$at/lib/x86_64-linux-gnu" "QEMU_MODULE_DIR=$lib/qemu" "$at/usr/bin/qemu-system-x86_64"
        -L "$at/usr/share/qemu" -L "$at/usr/share/seabios")
}

guest_await() {
    local end=$((SECONDS + seconds))
    while kill -0 "$child" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.2; done
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    child=''
}

guest_run_own() {
    (cd "$load" && find . -print0 | sort -z | cpio -0oH newc --quiet) >"$work/load.cpio"
    cat "$tree/tree.cpio" "$work/load.cpio" >"$work/initrd"
    # A /dev/kvm of another kind than Intel's or AMD's hangs Debian's kernel silently.
    local speed=tcg,thread=multi
    if [ -w /dev/kvm ] && [ ! -d /sys/module/kvm_pvm ] && { [ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ]; }; then speed=kvm; fi
    : >"$work/console.log" >"$work/journal.log"
    "${qemu[@]}" -nodefaults -no-user-config -display none -M q35 -accel "$speed" -cpu max -m 1536 -smp 2 -no-reboot \
        -serial "file:$work/console.log" -serial "file:$work/results.log" -serial "file:$work/journal.log" \
        -kernel "$tree/vmlinuz" -initrd "$work/initrd" \
        -append 'console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init random.trust_cpu=on mitigations=off psi=1 systemd.show_status=error' \
        </dev/null >"$work/qemu.log" 2>&1 &
    child=$!
    guest_await
}

guest_group_remove() {
    [ -d "$1" ] || return 0
    echo 1 >"$1/cgroup.kill" 2>/dev/null || true
    local tries=50
    while [ -d "$1" ] && [ $tries -gt 0 ]; do
        find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
        tries=$((tries - 1))
        sleep 0.1
    done
}

# nspawn comes from the guest's own tree, so that nothing is installed here. Namespaces of
# its own for processes, mounts and cgroups, with only cgroup v2 in sight, let it take a
# machine whose controllers are elsewhere for one of its kind.
guest_run_host() {
    local mount library=$tree/root/usr/lib/x86_64-linux-gnu
    mount=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
    if [ -z "$mount" ]; then
        mount=$work/cgroup2
        mkdir "$mount"
        mount -t cgroup2 cgroup2 "$mount" || fail "no cgroup v2 here"
    fi
    group=$mount/brig-guest.$$
    mkdir "$group" || fail "no cgroup can be made in $mount"
    mkdir "$work/layers" "$work/root" "$work/out"
    mount -t tmpfs -o mode=755 tmpfs "$work/layers"
    mkdir "$work/layers/upper" "$work/layers/work"
    mount -t overlay overlay -o "lowerdir=$tree/root,upperdir=$work/layers/upper,workdir=$work/layers/work" "$work/root"
    cp -a "$load/." "$work/root/"
    cat >"$work/start" <<START
set -e
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
! mountpoint -q /sys/fs/cgroup || umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec $library/ld-linux-x86-64.so.2 --library-path $library:$library/systemd $tree/root/usr/bin/systemd-nspawn --quiet \
    --register=no --keep-unit -D $work/root --bind=$work/out:/brig/out --private-network --console=pipe \
    --system-call-filter='@keyring landlock_create_ruleset landlock_add_rule landlock_restrict_self' --boot systemd.show_status=error
START
    (echo "$BASHPID" >"$group/cgroup.procs" && exec unshare -mCpf --kill-child --mount-proc --propagation private bash "$work/start") \
        </dev/null >"$work/console.log" 2>&1 &
    child=$!
    guest_await
    cp "$work/out/results.log" "$work/out/journal.log" "$work/" 2>/dev/null || true
}
