"""`python -m flbook.lectures.in_context_learning.task_diversity`: pretrain the lecture's two transformers again."""

from flbook.lectures.in_context_learning.task_diversity import Pretrained, retrain

if __name__ == "__main__":
    for each in (Pretrained.few(), Pretrained.many()):
        retrain(each)
