# Tests. `make unit` needs no VM and takes under a minute; `make check` is everything.

unit_bins = $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
fuzz_bins = $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
headers = $(wildcard $(rooms:%=%/*.h))
sources = $(wildcard $(rooms:%=%/*.[ch]) tests/*/*.[ch])
scripts = .ci/run .ci/setup etc/guest/mkguest etc/guest/init
san = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

$(B)/tests/%: tests/unit/%.c $(B)/libkbisect.a
	@mkdir -p $(@D)
	$(CC) $(cflags) $(pkg_cflags) $(CFLAGS) -Itests/unit $(LDFLAGS) -o $@ $< $(B)/libkbisect.a \
		$(pkg_libs) $(shell $(PKG_CONFIG) --libs cmocka)

# A fuzz target with a main that replays the files of its corpus.
$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/replay.c $(B)/libkbisect.a
	@mkdir -p $(@D)
	$(CC) $(cflags) $(pkg_cflags) $(CFLAGS) $(LDFLAGS) -o $@ $< tests/fuzz/replay.c \
		$(B)/libkbisect.a $(pkg_libs)

-include $(unit_bins:%=%.d) $(fuzz_bins:%=%.d)

.PHONY: unit corpus layers hdrcheck format lint sanitize clang e2e bisection check-all
unit: $(unit_bins)
	@set -e; for t in $(unit_bins); do echo "== $$t"; $$t; done

# Every fuzz target over its corpus. For real fuzzing: clang -fsanitize=fuzzer with the same files.
corpus: $(fuzz_bins)
	@set -e; for t in $(fuzz_bins); do n=$${t##*/fuzz_}; echo "== $$t"; \
		$$t tests/fuzz/corpus/$$n/*; done

layers:
	tests/layers

# Every header compiles alone.
hdrcheck:
	@set -e; for h in $(headers); do \
		$(CC) -x c $(filter-out -MMD -MP,$(cflags)) $(pkg_cflags) -Werror -fsyntax-only $$h; done
	@echo "hdrcheck: $(words $(headers)) headers"

format:
	$(CLANG_FORMAT) --dry-run -Werror $(sources)

lint: layers hdrcheck format
	shellcheck $(scripts)
	codespell .
	mandoc -T lint -W warning $(pages) >/dev/null
	tests/mankeys

# The same unit tests and corpora under other compilers and with sanitizers.
sanitize:
	$(MAKE) B=build/asan EXTRA_CFLAGS='$(san) -Werror' unit corpus
clang:
	$(MAKE) B=build/clang CC=clang EXTRA_CFLAGS='$(san) -Werror' unit corpus

# The running daemon, without VMs.
e2e: all
	KBISECT_BUILD=$(B) $(PYTEST) -q -p no:cacheprovider tests/e2e --deselect tests/e2e/test_bisection.py

# One whole bisection of a real kernel through libvirt.
bisection: all
	KBISECT_BUILD=$(B) $(PYTEST) -q -p no:cacheprovider tests/e2e/test_bisection.py

check-all:
	$(MAKE) lint
	$(MAKE) B=build/check EXTRA_CFLAGS=-Werror all unit
	$(MAKE) sanitize
	$(MAKE) clang
	$(MAKE) B=build/check EXTRA_CFLAGS=-Werror e2e
	$(MAKE) B=build/check EXTRA_CFLAGS=-Werror bisection
