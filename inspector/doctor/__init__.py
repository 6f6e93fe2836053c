"""The forward doctor: does a network run on an input, where and why does it fail, what does each module give?"""
