# SPDX-License-Identifier: Apache-2.0
"""paddle.dataset.movielens: a million ratings of films.

A sample is [user id, gender, age, job, movie id, [category ids], [title
ids], [rating * 2 - 5]]. Ids of categories and title words follow the
alphabet, so that all processes agree. In place of the archive its files may
lie unpacked in movielens/; without users.dat all users are alike.
"""
import io
import os
import re
import zipfile

import numpy as np

from . import common

__all__ = ["train", "test", "get_movie_title_dict", "max_movie_id",
           "max_user_id", "age_table", "movie_categories", "max_job_id",
           "user_info", "movie_info", "fetch"]

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
age_table = [1, 18, 25, 35, 45, 50, 56]


class MovieInfo:
    def __init__(self, index, categories, title):
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self):
        """[id, category ids, title ids], for a sample."""
        meta = _meta()
        return [self.index, [meta.categories[c] for c in self.categories],
                [meta.titles[w] for w in _words(self.title)]]

    def __repr__(self):
        return "<MovieInfo id(%d), title(%s), categories(%s)>" % (
            self.index, self.title, self.categories)


class UserInfo:
    def __init__(self, index, gender, age, job_id):
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self):
        """[id, 0 for male or 1, index in age_table, job], for a sample."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self):
        return "<UserInfo id(%d), gender(%s), age(%d), job(%d)>" % (
            self.index, "M" if self.is_male else "F", age_table[self.age],
            self.job_id)


class _Meta:
    """All but the ratings of one copy of the set."""

    def __init__(self, path):
        self.path = path
        self.movies, self.users = {}, {}
        for index, title, kinds in _rows(path, "movies.dat"):
            title = re.sub(r"\s*\(\d+\)$", "", title)  # the year
            movie = MovieInfo(index, kinds.split("|"), title)
            self.movies[movie.index] = movie
        for index, gender, age, job, *_ in _users(path):
            self.users[int(index)] = UserInfo(index, gender, age, job)
        self.categories = _numbered(m.categories
                                    for m in self.movies.values())
        self.titles = _numbered(_words(m.title) for m in self.movies.values())


_loaded = {}  # path -> _Meta


def _words(title):
    return title.lower().split()


def _numbered(lists):
    members = sorted(set().union(*lists))
    return {name: i for i, name in enumerate(members)}


def _open(path, name):
    """A binary file of the set: in the archive, or beside ratings.dat."""
    if not path.endswith(".zip"):
        return open(os.path.join(os.path.dirname(path), name), "rb")
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.open("ml-1m/" + name)
    except (zipfile.BadZipFile, KeyError) as e:
        raise ValueError("movielens: %s is damaged: %s" % (path, e)) from None


def _rows(path, name):
    with _open(path, name) as f:
        for line in io.TextIOWrapper(f, "latin-1"):
            yield line.strip().split("::")


def _users(path):
    try:
        yield from _rows(path, "users.dat")
    except FileNotFoundError:
        for user in {row[0] for row in _rows(path, "ratings.dat")}:
            yield user, "M", age_table[0], 0


def fetch():
    """The path of the archive, or of an unpacked ratings.dat."""
    return common.locate(URL, "movielens", MD5,
                         instead=["movielens/ratings.dat",
                                  "movielens/ml-1m/ratings.dat"])[0]


def _meta():
    path = fetch()
    if path not in _loaded:
        _loaded[path] = _Meta(path)
    return _loaded[path]


def _reader(is_test, rand_seed=0, test_ratio=0.1):
    meta = _meta()

    def reader():
        draw = np.random.RandomState(rand_seed)
        movies = {m.index: m.value() for m in meta.movies.values()}
        for user, movie, rating, *_ in _rows(meta.path, "ratings.dat"):
            if (draw.random_sample() < test_ratio) == is_test:
                yield (meta.users[int(user)].value() + movies[int(movie)] +
                       [[float(rating) * 2 - 5.0]])

    return reader


def train():
    """A reader of nine ratings in ten."""
    return _reader(False)


def test():
    """A reader of the other ratings."""
    return _reader(True)


def get_movie_title_dict():
    """Word of a title to its id."""
    return _meta().titles


def movie_categories():
    """Name of a category to its id."""
    return _meta().categories


def max_movie_id():
    return max(_meta().movies)


def max_user_id():
    return max(_meta().users)


def max_job_id():
    return max(u.job_id for u in _meta().users.values())


def user_info():
    """User id to UserInfo."""
    return _meta().users


def movie_info():
    """Movie id to MovieInfo."""
    return _meta().movies
