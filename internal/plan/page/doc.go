// Package page renders a plan as one self-contained HTML page: no script, no
// request to anywhere, light and dark as the reader's system says, readable on a
// phone. It is apart from package plan so that programs without a page do not
// carry a template engine.
//
// Everything from the input goes through html/template's escaping: a pod named
// <script> is text.
package page
