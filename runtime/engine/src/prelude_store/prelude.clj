(ns prelude
  "Versions of preludes: look at them, write new ones."
  {:visibility :prompt})

(defn list
  "Every prelude of the store, with its current and its latest version."
  []
  (tool/prelude_store_list {}))

(defn history
  "The versions of a prelude that are kept."
  [id]
  (tool/prelude_store_history {:id id}))

(defn read
  "A version with its text: of an id the current one, of id@7 that one."
  [ref]
  (tool/prelude_store_read {:id ref}))

(defn source
  "The text of a version; fails when there is none, or more of it than is shown."
  [ref]
  (let [found (read ref)]
    (cond
      (= "error" (:status found)) (fail found)
      (:source_truncated found) (fail {:reason :source_truncated
                                       :message "only the beginning of the text is shown: see (prelude/read ref)"
                                       :source_bytes (:source_bytes found)})
      :else (:source found))))

(defn write
  "Compiles {:id :source :metadata} and makes it the current version of the prelude."
  {:effect :write}
  [candidate]
  (tool/prelude_store_write (assoc candidate :metadata (or (:metadata candidate) {}))))

(defn set-default
  "Makes {:id :version :checksum :metadata} the current version; checksum and metadata may be left out."
  {:effect :write}
  [selection]
  (tool/prelude_store_set_default (assoc selection :metadata (or (:metadata selection) {}))))
