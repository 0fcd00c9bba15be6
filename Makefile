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
unitdir = /lib/systemd/system
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
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(LIBS_DAEMON))

rooms = base db bisect boot daemon client
src = $(wildcard $(1:%=%/*.c))
obj = $(patsubst %.c,$(B)/%.o,$(call src,$(1)))
main_obj = $(B)/daemon/main.o $(B)/client/main.o

.PHONY: all
all: $(B)/kbisectd $(B)/kbctl

-include tests/tests.mk

$(B)/kbisectd: $(call obj,base db bisect boot daemon)
	$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(LDFLAGS) -o $@ $^ \
		$(shell $(PKG_CONFIG) --libs $(LIBS_DAEMON)) -lpthread -lm

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

.PHONY: clean distclean
clean:
	rm -rf build
distclean: clean
	rm -rf demo-state
