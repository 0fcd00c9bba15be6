# Benchmarks of kbisectd itself. Each target ends with one line a figure:
#	bench-X: WHAT VALUE (goal <= GOAL)

$(B)/bench/%: tests/bench/%.c $(B)/libkbisect.a
	@mkdir -p $(@D)
	$(CC) $(cflags) $(pkg_cflags) $(CFLAGS) -Wl,--as-needed $(LDFLAGS) -o $@ $< \
		$(B)/libkbisect.a $(pkg_libs)

# BENCH: more options for tests/bench/overhead, such as --kernel FILE.
.PHONY: bench-overhead
bench-overhead: setup
	$(MAKE) all $(B)/bench/bareboot
	tests/bench/overhead --build $(B) $(BENCH)
