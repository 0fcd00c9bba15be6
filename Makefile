# kbisectd: `make demo` and `make check` do everything; see README.md. GNU make.

PACKAGE = kbisectd
VERSION = 0.1
prefix = /usr/local
bindir = $(prefix)/bin
sbindir = $(prefix)/sbin
datadir = $(prefix)/share
sysconfdir = /etc
mandir = $(datadir)/man
localstatedir = /var
libdir = $(prefix)/lib
unitdir = $(libdir)/systemd/system
INSTALL = install
PKG_CONFIG = pkg-config
CLANG_FORMAT = clang-format
PYTEST = /usr/bin/python3 -m pytest
CFLAGS ?= -O2 -g

# B: everything that is built goes here; the sanitised and clang builds use folders of their own.
B = build
LIBS_DAEMON = libgit2 libssh2 sqlite3 libevent_core libevent_extra libvirt libvirt-qemu jansson \
	gmime-3.0 libcurl libxml-2.0 libcrypto gsl
LIBS_CLIENT = jansson libcrypto
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef -Wvla
cflags = -std=gnu17 -D_GNU_SOURCE -I. -I$(B) -MMD -MP $(WARN) -fstack-protector-strong \
	-DKBISECTD_VERSION='"$(VERSION)"' -DKBISECTD_SYSCONFDIR='"$(sysconfdir)/kbisectd"' \
	-DKBISECTD_DATADIR='"$(datadir)/kbisectd"' -DKBISECTD_STATEDIR='"$(localstatedir)/lib/kbisectd"' \
	$(CPPFLAGS) $(EXTRA_CFLAGS)
# Asked once, and only when something is compiled: before `setup` the packages may be missing.
pkg_cflags = $(eval pkg_cflags := $(shell $(PKG_CONFIG) --cflags $(LIBS_DAEMON)))$(pkg_cflags)
pkg_libs = $(eval pkg_libs := $(shell $(PKG_CONFIG) --libs $(LIBS_DAEMON)) -lpthread -lm)$(pkg_libs)

rooms = base db bisect boot daemon client
src = $(wildcard $(1:%=%/*.c))
obj = $(patsubst %.c,$(B)/%.o,$(call src,$(1)))
main_obj = $(B)/daemon/main.o $(B)/daemon/main_step.o $(B)/client/main.o
lib_obj = $(filter-out $(main_obj),$(call obj,$(rooms)))

.PHONY: all
all: $(B)/kbisectd $(B)/kbisectd-step $(B)/kbctl

-include tests/tests.mk

$(B)/libkbisect.a: $(lib_obj)
	rm -f $@
	$(AR) qcs $@ $^

# Each takes from the archive, and of the libraries, only what it uses: the daemon's memory is small
# because the libraries of the steps are not in it.
$(B)/kbisectd: $(B)/daemon/main.o $(B)/libkbisect.a | $(B)/kbisectd-step
$(B)/kbisectd-step: $(B)/daemon/main_step.o $(B)/libkbisect.a
$(B)/kbisectd $(B)/kbisectd-step:
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) -Wl,--as-needed $(LDFLAGS) -o $@ $^ $(pkg_libs)

$(B)/kbctl: $(call obj,base client)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(LIBS_CLIENT)) -lm

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(cflags) $(pkg_cflags) $(CFLAGS) -c -o $@ $<

# The schema travels inside the binary.
$(B)/db/schema.sql.h: db/schema.sql
	@mkdir -p $(@D)
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' $< > $@
$(B)/db/db.o: $(B)/db/schema.sql.h

-include $(patsubst %.o,%.d,$(call obj,$(rooms)))

# The two commands. Each installs what is missing first, so it works on a bare Debian 12.
.PHONY: setup demo check
setup:
	.ci/setup
demo: setup
	$(MAKE) all
	tests/demo/run --build $(B) --state demo-state
check: setup
	$(MAKE) check-all

pages = man/kbisectd.8 man/kbisectd.conf.5 man/kbctl.1 man/kbisectd-job.5 man/kbisectd-benchmark.5
units = kbisectd.service kbisectd.socket
D = $(DESTDIR)

.PHONY: install install-strip uninstall
install: all
	$(INSTALL) -d $(D)$(sbindir) $(D)$(bindir) $(D)$(unitdir) $(D)$(libdir)/sysusers.d \
		$(D)$(libdir)/tmpfiles.d $(D)$(sysconfdir)/kbisectd/benchmarks.d \
		$(D)$(datadir)/kbisectd/guest $(D)$(datadir)/kbisectd/kernel
	$(INSTALL) $(STRIP_FLAG) -m 755 $(B)/kbisectd $(B)/kbisectd-step $(D)$(sbindir)/
	$(INSTALL) $(STRIP_FLAG) -m 755 $(B)/kbctl $(D)$(bindir)/kbctl
	$(INSTALL) -m 755 etc/guest/mkguest etc/guest/init $(D)$(datadir)/kbisectd/guest
	$(INSTALL) -m 644 etc/kernel/*.config $(D)$(datadir)/kbisectd/kernel
	for u in $(units); do \
		sed 's|@sbindir@|$(sbindir)|g' systemd/$$u > $(B)/$$u && \
		$(INSTALL) -m 644 $(B)/$$u $(D)$(unitdir)/$$u || exit 1; \
	done
	$(INSTALL) -m 644 systemd/kbisectd.sysusers $(D)$(libdir)/sysusers.d/kbisectd.conf
	$(INSTALL) -m 644 systemd/kbisectd.tmpfiles $(D)$(libdir)/tmpfiles.d/kbisectd.conf
	for p in $(pages); do \
		$(INSTALL) -d $(D)$(mandir)/man$${p##*.} && \
		$(INSTALL) -m 644 $$p $(D)$(mandir)/man$${p##*.}/ || exit 1; \
	done
	# A configuration file that is there already is the administrator's.
	for f in kbisectd.conf benchmarks.d/*.conf; do \
		f=$${f#etc/}; \
		for g in etc/$$f; do \
			t=$(D)$(sysconfdir)/kbisectd/$${g#etc/}; \
			[ -e $$t ] || $(INSTALL) -m 644 $$g $$t || exit 1; \
		done; \
	done
install-strip:
	$(MAKE) install STRIP_FLAG=-s
uninstall:
	rm -f $(D)$(sbindir)/kbisectd $(D)$(sbindir)/kbisectd-step $(D)$(bindir)/kbctl $(units:%=$(D)$(unitdir)/%) \
		$(D)$(libdir)/sysusers.d/kbisectd.conf $(D)$(libdir)/tmpfiles.d/kbisectd.conf
	for p in $(pages); do rm -f $(D)$(mandir)/man$${p##*.}/$${p#man/}; done
	rm -rf $(D)$(datadir)/kbisectd

.PHONY: dist clean distclean
dist:
	git archive --prefix=$(PACKAGE)-$(VERSION)/ -o $(PACKAGE)-$(VERSION).tar.gz HEAD
clean:
	rm -rf build
distclean: clean
	rm -rf demo-state $(PACKAGE)-*.tar.gz

-include tests/bench/bench.mk
