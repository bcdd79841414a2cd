"""Published works as BibTeX entries. Each method lists the works that it rests on in ``Method.works``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from lidp.errors import InvalidArgument

_ENTRY = re.compile(r"@[A-Za-z]+\{([^\s,{}]+),.*\}\s*", flags=re.DOTALL)


@dataclass(frozen=True)
class Work:
    """A published work, given by its BibTeX entry.

    Raises:
        InvalidArgument: if the text does not start with ``@kind{key,``, does not end with a brace, or has unbalanced braces.
    """

    bibtex: str

    def __post_init__(self) -> None:
        if not _ENTRY.fullmatch(self.bibtex) or self.bibtex.count("{") != self.bibtex.count("}"):
            raise InvalidArgument(f"bibtex must be one entry such as '@misc{{key, title = {{...}}}}', got {self.bibtex!r}")

    @property
    def key(self) -> str:
        """Return the key by which the entry is cited."""
        match = _ENTRY.fullmatch(self.bibtex)
        assert match is not None  # noqa: S101  # checked when the work was made
        return match[1]


class HasWorks(Protocol):
    """A method, as an object or as its class: anything that lists works."""

    @property
    def works(self) -> tuple[Work, ...]:
        """The works to cite."""
        ...


def bibtex(methods: Iterable[HasWorks]) -> str:
    """Return the BibTeX entries of the works that the methods list: each work once, in the order of the methods."""
    works = dict.fromkeys(work for method in methods for work in method.works)
    return "\n\n".join(work.bibtex for work in works)


PILLUTLA_2023 = Work(
    """@inproceedings{pillutla2023unleashing,
  title     = {Unleashing the Power of Randomization in Auditing Differentially Private {ML}},
  author    = {Pillutla, Krishna and Andrew, Galen and Kairouz, Peter and McMahan, H. Brendan and Oprea, Alina and Oh, Sewoong},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {36},
  year      = {2023}
}"""
)

STEINKE_2023 = Work(
    """@inproceedings{steinke2023privacy,
  title     = {Privacy Auditing with One (1) Training Run},
  author    = {Steinke, Thomas and Nasr, Milad and Jagielski, Matthew},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {36},
  year      = {2023}
}"""
)

WAUDBY_SMITH_2024 = Work(
    """@article{waudbysmith2024estimating,
  title   = {Estimating Means of Bounded Random Variables by Betting},
  author  = {Waudby-Smith, Ian and Ramdas, Aaditya},
  journal = {Journal of the Royal Statistical Society Series B: Statistical Methodology},
  volume  = {86},
  number  = {1},
  pages   = {1--27},
  year    = {2024}
}"""
)

MAHLOUJIFAR_2024 = Work(
    """@misc{mahloujifar2024auditing,
  title         = {Auditing $f$-Differential Privacy in One Run},
  author        = {Mahloujifar, Saeed and Melis, Luca and Chaudhuri, Kamalika},
  year          = {2024},
  eprint        = {2410.22235},
  archiveprefix = {arXiv}
}"""
)

DONG_2022 = Work(
    """@article{dong2022gaussian,
  title   = {Gaussian Differential Privacy},
  author  = {Dong, Jinshuo and Roth, Aaron and Su, Weijie J.},
  journal = {Journal of the Royal Statistical Society Series B: Statistical Methodology},
  volume  = {84},
  number  = {1},
  pages   = {3--37},
  year    = {2022}
}"""
)
NASR_2023 = Work(
    """@inproceedings{nasr2023tight,
  title     = {Tight Auditing of Differentially Private Machine Learning},
  author    = {Nasr, Milad and Hayes, Jamie and Steinke, Thomas and Balle, Borja and Tram{\\`e}r, Florian and Jagielski, Matthew
               and Carlini, Nicholas and Terzis, Andreas},
  booktitle = {32nd {USENIX} Security Symposium},
  year      = {2023}
}"""
)

ZANELLA_BEGUELIN_2023 = Work(
    """@inproceedings{zanellabeguelin2023bayesian,
  title     = {{B}ayesian Estimation of Differential Privacy},
  author    = {Zanella-B{\\'e}guelin, Santiago and Wutschitz, Lukas and Tople, Shruti and Salem, Ahmed and R{\\"u}hle, Victor
               and Paverd, Andrew and Naseri, Mohammad and K{\\"o}pf, Boris and Jones, Daniel},
  booktitle = {International Conference on Machine Learning},
  year      = {2023}
}"""
)

CLOPPER_1934 = Work(
    """@article{clopper1934use,
  title   = {The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial},
  author  = {Clopper, C. J. and Pearson, E. S.},
  journal = {Biometrika},
  volume  = {26},
  number  = {4},
  pages   = {404--413},
  year    = {1934}
}"""
)

WILSON_1927 = Work(
    """@article{wilson1927probable,
  title   = {Probable Inference, the Law of Succession, and Statistical Inference},
  author  = {Wilson, Edwin B.},
  journal = {Journal of the American Statistical Association},
  volume  = {22},
  number  = {158},
  pages   = {209--212},
  year    = {1927}
}"""
)

BROWN_2001 = Work(
    """@article{brown2001interval,
  title   = {Interval Estimation for a Binomial Proportion},
  author  = {Brown, Lawrence D. and Cai, T. Tony and DasGupta, Anirban},
  journal = {Statistical Science},
  volume  = {16},
  number  = {2},
  pages   = {101--133},
  year    = {2001}
}"""
)
