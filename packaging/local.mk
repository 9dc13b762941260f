# make deb: Debian packages of what make dist makes, in deb/, with the CUDA toolkit of this build. DEB_FLAGS go to
# dpkg-buildpackage. SOURCE_ONLY=1 makes the source package alone.
DEB_FLAGS = -b
deb: dist
	rm -rf deb && $(MKDIR_P) deb
	cp $(distdir).tar.xz deb/$(PACKAGE)_$(VERSION).orig.tar.xz
	cd deb && tar -xf $(PACKAGE)_$(VERSION).orig.tar.xz && cp -R $(distdir)/packaging/debian $(distdir)/debian && \
		dpkg-source -b $(distdir)
	test -n "$(SOURCE_ONLY)" || { nvcc=$(NVCC) && cd deb/$(distdir) && HETCOLL_CUDA=$${nvcc%/bin/nvcc} \
		dpkg-buildpackage -us -uc -Ppkg.hetcoll.othercuda $(DEB_FLAGS); }
.PHONY: deb
