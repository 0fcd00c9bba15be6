# Tests: `make unit` needs no VM, `make check` is everything.

lib_obj = $(filter-out $(main_obj),$(call obj,base db bisect boot daemon client))
unit_bins = $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))

$(B)/tests/%: tests/unit/%.c $(B)/libkbisect.a
	@mkdir -p $(@D)
	$(CC) $(cflags) $(pkg_cflags) $(CFLAGS) -Itests/unit $(LDFLAGS) -o $@ $< $(B)/libkbisect.a \
		$(shell $(PKG_CONFIG) --libs $(LIBS_DAEMON) cmocka) -lpthread -lm

$(B)/libkbisect.a: $(lib_obj)
	rm -f $@
	$(AR) qcs $@ $^

-include $(unit_bins:%=%.d)

.PHONY: unit
unit: $(unit_bins)
	@set -e; for t in $(unit_bins); do echo "== $$t"; $$t; done
