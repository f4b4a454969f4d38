"""Builds the C kernels; all else that setuptools needs is in pyproject.toml."""

from __future__ import annotations

import shutil

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError


class BuildKernels(build_ext):
    """Says in one sentence that there is no C compiler."""

    def build_extension(self, ext: Extension) -> None:
        """Build one extension module."""
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError) as error:
            command = getattr(self.compiler, "compiler", None) or ["cc"]
            if isinstance(error, PlatformError) or shutil.which(command[0]) is None:
                raise SystemExit(
                    f"sfumato must be built with a C compiler, and there is no {command[0]!r}: install one "
                    "(on Debian and Ubuntu 'apt-get install gcc', on macOS 'xcode-select --install'), or "
                    "install a wheel, which needs none"
                ) from None
            raise


setup(cmdclass={"build_ext": BuildKernels})
