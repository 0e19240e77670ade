from sweeper.notebook.study import Study as Study
from sweeper.notebook.study import load_study as load_study

__version__: str
